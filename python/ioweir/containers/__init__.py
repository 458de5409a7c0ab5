"""Files whose bytes lie in several (containers, partitioned sets, divided netCDF), and whether files are whole."""
