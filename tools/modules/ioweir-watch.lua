-- Traces all that a batch job starts from here on (docs/how-to/for-a-whole-site.md).
whatis("traces the I/O of all that a batch job starts")
help("Traces all that this batch job starts from here on. IOWEIR_DISABLE=1 switches it off.")
source_sh("bash", "@PREFIX@/share/ioweir/watch.sh")
