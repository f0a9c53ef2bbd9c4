"""Input from outside, made up by a fuzzer. A target is a module with ``one`` (an input) and ``seeds`` (real ones)."""
