"""Many runs of a site together: which programs lose most time to what, over weeks (docs/reference/site.md)."""
