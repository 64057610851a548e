"""What holds for all tests: nothing hangs on how fast the machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile("kerntest", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kerntest")
