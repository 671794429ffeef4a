"""``python -m dpselect.explorer``: the page without the command line's other parts."""

from dpselect.explorer import open_page

if __name__ == "__main__":
    open_page()
