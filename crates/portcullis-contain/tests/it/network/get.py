"""Fetches two addresses: with `urllib`, and with `requests` as pip brings it."""
import sys, urllib.request

for address in sys.argv[1:]:
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert answer.read() == b"hello\n"
    try:
        from pip._vendor import requests
    except ImportError:
        print("no requests")
        continue
    # Of the variables for certificates it knows another one.
    assert requests.get(address, timeout=20).text == "hello\n"
print("got")
