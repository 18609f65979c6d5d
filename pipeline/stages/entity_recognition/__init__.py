"""Gold and predicted mentions of entities: matches, scores at every threshold, averages over documents."""
