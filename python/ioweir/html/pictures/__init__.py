"""What each plot of the page is drawn from: sums over bins, bounded in size whatever the trace's."""
