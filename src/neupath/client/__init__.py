"""Client: a service of `neupath serve` from Python; it needs none of the packages that serving needs."""

from neupath.client.calls import ServiceError
from neupath.client.client import Client
from neupath.client.jobs import Event, RemoteJob

__all__ = ["Client", "Event", "RemoteJob", "ServiceError"]
