"""Many connections that always have something to ask: each must get its turn.

Each connection sends a pipeline of reads and sends the next one when it has all replies. A server that
is busy all the time may serve some connections again and again while others wait.

Usage: turns.py PORT TOKEN. Prints "ok" and the number of checks, or fails.
"""

import select
import socket
import sys

from checks import check, done, equal

PORT, TOKEN = int(sys.argv[1]), sys.argv[2]
N_CONNECTIONS, N_ROUNDS, PIPELINE = 800, 15, 32
VALUE = b"x" * 32
REQUEST = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" * PIPELINE
N_REPLY_BYTES = len(b"$32\r\n%b\r\n" % VALUE) * PIPELINE


def connect():
    connection = socket.create_connection(("127.0.0.1", PORT))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(b"AUTH %b\r\n" % TOKEN.encode())
    equal(connection.recv(100), b"+OK\r\n")
    return connection


first = connect()
first.sendall(b"SET k %b\r\n" % VALUE)
equal(first.recv(100), b"+OK\r\n")
connections = {}
ready = select.epoll()
for _ in range(N_CONNECTIONS):
    connection = connect()
    connections[connection.fileno()] = connection
    ready.register(connection, select.EPOLLIN)
for connection in connections.values():
    connection.sendall(REQUEST)
n_bytes = dict.fromkeys(connections, 0)
n_turns = dict.fromkeys(connections, 0)
while sum(n_turns.values()) < N_ROUNDS * N_CONNECTIONS:
    for number, _ in ready.poll():
        n_bytes[number] += len(connections[number].recv(1 << 16))
        if n_bytes[number] == N_REPLY_BYTES:
            n_bytes[number] = 0
            n_turns[number] += 1
            connections[number].sendall(REQUEST)
fewest, most = min(n_turns.values()), max(n_turns.values())
check(2 * fewest >= most, "one had", fewest, "turns, another", most)
done("turns:", fewest, "to", most)
