"""One function for each stage: frames or files in, result tables as Polars frames out."""
