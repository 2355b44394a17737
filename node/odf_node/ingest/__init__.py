"""Root datasets: fetch, read, merge and commit what outside sources have."""
