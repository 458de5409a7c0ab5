"""`python -m ioweir`: the same as the console script."""

from ioweir.cli.start import main

if __name__ == "__main__":
    main()
