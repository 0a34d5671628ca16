"""Analytics: time series, summaries and reports of checks, from results and from roll-ups."""
