"""`python -m pipeline` is `thresher`."""

from thresher.__main__ import command

if __name__ == "__main__":
    command()
