"""Measure: the only room that knows torch, CUPTI and NVML. It writes runs into the store."""
