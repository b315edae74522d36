#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Messages of the connection manager on an Ethernet device, read and forged (RoCE v2, IPv4).

    cm_wire.py watch DEVICE
        prints one line for each: SOURCE DESTINATION MESSAGE LOCAL-ID REMOTE-ID QPN
    cm_wire.py send SOURCE DESTINATION dreq|rej|rep LOCAL-ID REMOTE-ID NUMBER
        sends one; NUMBER is the QPN of a DREQ or REP and the reason of a REJ (to a REQ)
"""

import socket
import struct
import sys
import zlib

UDP_PORT = 4791
UD_SEND_ONLY = 0x64
GSI_QKEY = 0x80010000
NAMES = {
    0x10: "req", 0x11: "mra", 0x12: "rej", 0x13: "rep", 0x14: "rtu", 0x15: "dreq", 0x16: "drep",
}  # fmt: skip
# Where a message holds a QPN, from the start of the MAD.
QPN_AT = {"req": 24 + 32, "rep": 24 + 12, "dreq": 24 + 8}
MAD_SIZE = 256


def watch(device):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    sock.bind((device, 0))
    print("watching", flush=True)
    while True:
        frame = sock.recv(2048)
        # Ethernet 14, IPv4 20, UDP 8, BTH 12, DETH 8, MAD 256, ICRC 4
        if len(frame) < 14 + 20 + 8 + 20 + MAD_SIZE or frame[12:14] != b"\x08\x00":
            continue
        ip, mad = frame[14:34], frame[62 : 62 + MAD_SIZE]
        if ip[9] != socket.IPPROTO_UDP or frame[36:38] != struct.pack("!H", UDP_PORT):
            continue
        if frame[42] != UD_SEND_ONLY or mad[1] != 7:
            continue
        name = NAMES.get(struct.unpack_from("!H", mad, 16)[0], "other")
        local, remote = struct.unpack_from("!II", mad, 24)
        qpn = 0
        if name in QPN_AT:
            qpn = struct.unpack_from("!I", mad, QPN_AT[name])[0] >> 8
        source, destination = socket.inet_ntoa(ip[12:16]), socket.inet_ntoa(ip[16:20])
        print(source, destination, name, local, remote, qpn, flush=True)


def mad(name, local, remote, number):
    attribute = {text: code for code, text in NAMES.items()}[name]
    # Version 1, class CM version 2, method Send; a transaction of our own.
    header = struct.pack("!BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 0x666F726765, attribute, 0, 0)
    if name == "dreq":
        body = struct.pack("!III", local, remote, number << 8)
    elif name == "rej":
        body = struct.pack("!IIBBH", local, remote, 0, 0, number)
    else:
        # Q_Key, QPN, EECN, PSN, resources, flags, the GUID of no adapter
        body = struct.pack("!IIIIIIBBBBQ", local, remote, 0, number << 8, 0, 0, 1, 1, 0, 0, 1)
    return (header + body).ljust(MAD_SIZE, b"\0")


def packet(source, destination, payload):
    transport = struct.pack("!BBHII", UD_SEND_ONLY, 0, 0xFFFF, 1, 0)
    transport += struct.pack("!II", GSI_QKEY, 1)
    length = 8 + len(transport) + len(payload) + 4

    def headers(tos, ttl, ip_sum, udp_sum):
        return struct.pack(
            "!BBHHHBBH4s4sHHHH", 0x45, tos, 20 + length, 1, 0x4000, ttl, socket.IPPROTO_UDP,
            ip_sum, socket.inet_aton(source), socket.inet_aton(destination),
            0xC000, UDP_PORT, length, udp_sum,
        )  # fmt: skip

    # The invariant checksum covers the headers with ones for what may change on the way,
    # behind eight bytes of ones for the link's header.
    masked = transport[:4] + b"\xff" + transport[5:]
    icrc = zlib.crc32(b"\xff" * 8 + headers(0xFF, 0xFF, 0xFFFF, 0xFFFF) + masked + payload)
    # The kernel fills in the checksum of the IP header.
    return headers(0, 64, 0, 0) + transport + payload + struct.pack("<I", icrc)


def send(source, destination, name, local, remote, number):
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    payload = mad(name, int(local), int(remote), int(number))
    sock.sendto(packet(source, destination, payload), (destination, 0))


if __name__ == "__main__":
    {"watch": watch, "send": send}[sys.argv[1]](*sys.argv[2:])
