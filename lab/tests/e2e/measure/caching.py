"""The exchanges that remain with caching strategies: a second, independent computation.

Reads a table of sessions (user, begin, end, received, sent, in the order of begins) from the file
of the first argument, and from standard input a list of strategies with their limits: seconds
since the full exchange, seconds with a tunnel, octets. The second argument is the number of
entries for which the gateway has room. Prints the number of full exchanges for each strategy.

The rules are those of the paper (section IV-B): a client resumes its own session if all limits
are kept. A user with sessions at the same time has several clients; the one that comes is the one
that left last. Without room, the entry goes whose clock ends first.
"""

import csv
import heapq
import json
import sys


def exchanges(sessions, strategy, room):
    clients = {}  # user -> list of [end of session, since, seconds, octets, entry]
    stored = {}  # entry -> end of its clock
    ends = []
    full = 0
    clock = strategy["clocked"]
    for entry, (user, begin, end, octets) in enumerate(sessions):
        mine = clients.setdefault(user, [])
        absent = [client for client in mine if client[0] <= begin]
        since, seconds, carried = begin, 0, 0
        resumed = False
        if absent:
            client = max(absent, key=lambda client: client[0])
            mine.remove(client)
            resumed = (
                begin - client[1] < clock
                and (strategy["established"] is None or client[2] < strategy["established"])
                and (strategy["data"] is None or client[3] < strategy["data"])
                and client[4] in stored
            )
            if resumed:
                since, seconds, carried = client[1:4]
                del stored[client[4]]
        full += not resumed
        # The gateway gives a ticket at the begin, with what was used before.
        while ends and (ends[0][0] <= begin or ends[0][1] not in stored):
            stored.pop(heapq.heappop(ends)[1], None)
        while len(stored) >= room:
            stored.pop(heapq.heappop(ends)[1], None)
        stored[entry] = since + clock
        heapq.heappush(ends, (since + clock, entry))
        mine.append((end, since, seconds + end - begin, carried + octets, entry))
    return full


def main():
    with open(sys.argv[1], newline="") as file:
        rows = [
            (row["user"], int(row["begin"]), int(row["end"]), int(row["received"]) + int(row["sent"]))
            for row in csv.DictReader(file)
        ]
    strategies = json.load(sys.stdin)
    room = int(sys.argv[2])
    print(json.dumps([exchanges(rows, strategy, room) for strategy in strategies]))


main()
