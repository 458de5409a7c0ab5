"""Starting programs with ioweir underneath, on any launcher, and saying beforehand what it will see of them."""
