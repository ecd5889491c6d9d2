"""Tests of `fastlayers.batch`."""
