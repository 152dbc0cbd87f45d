"""The broker: gathers commands into commits, holds long polls, and does what time demands."""

from penstock.broker.broker import Broker, BrokerOptions

__all__ = ["Broker", "BrokerOptions"]
