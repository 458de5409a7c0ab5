"""What every package uses: texts, units, files that others may have made, and loading what is compiled."""
