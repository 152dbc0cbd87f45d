"""Side by side with peers, interleaved in one run, as ratios: ``make bench``."""
