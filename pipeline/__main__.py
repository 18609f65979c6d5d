"""`python -m pipeline` is `thresher`."""

from pipeline.cli import main

if __name__ == "__main__":
    main()
