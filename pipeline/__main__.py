"""`python -m pipeline` is `thresher`."""

from thresher.__main__ import main

if __name__ == "__main__":
    main()
