"""The report as one web page that needs nothing else: `ioweir report DIR --html FILE` (docs/reference/html-report.md).

Figures come from ioweir.report and ioweir.findings. Here: what the page's plots are drawn from (model.py, pictures/),
how that is packed (packing.py), and the page itself (page.py, assets/).
"""
