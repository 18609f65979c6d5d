"""A config run from end to end: inputs opened, stages run, results published, provenance kept."""
