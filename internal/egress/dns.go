package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/url"
	"strings"
)

// What a message of DNS says.
const (
	dnsHeader = 12 // bytes
	typeA     = 1
	classIN   = 1

	dnsResponse   = 0x8000 // flags
	dnsOpcode     = 0x7800
	dnsOurs       = 0x8480 // a response, with authority, of somebody who asks others if need be
	dnsRecursion  = 0x0100
	dnsMalformed  = 1 // codes
	dnsFailed     = 2
	dnsNoName     = 3
	dnsNotHandled = 4
)

// ServeDNS answers the lookups of programs without a proxy: a host that the run may reach
// has an address of its own, which leads to ServeTLS and ServePlain, and no other name
// exists. Nothing is ever asked of anybody else. It returns when c is closed or ctx ends.
func (r *Run) ServeDNS(ctx context.Context, c net.PacketConn) error {
	defer context.AfterFunc(ctx, func() { c.Close() })()
	packet := make([]byte, 512)
	for {
		n, from, err := c.ReadFrom(packet)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if answer := r.lookup(ctx, packet[:n]); answer != nil {
			_, _ = c.WriteTo(answer, from) // who did not get it asks again
		}
	}
}

// lookup answers a message; nil: it is none that is answered.
func (r *Run) lookup(ctx context.Context, packet []byte) []byte {
	if len(packet) < dnsHeader {
		return nil
	}
	flags := binary.BigEndian.Uint16(packet[2:])
	if flags&dnsResponse != 0 {
		return nil
	}
	say := func(code uint16, question []byte) []byte {
		out := append([]byte(nil), packet[:2]...)
		out = binary.BigEndian.AppendUint16(out, dnsOurs|flags&(dnsOpcode|dnsRecursion)|code)
		out = append(out, 0, 0, 0, 0, 0, 0, 0, 0)
		if question != nil {
			out[5] = 1
		}
		return append(out, question...)
	}
	if flags&dnsOpcode != 0 {
		return say(dnsNotHandled, nil)
	}
	name, kind, question := parseQuestion(packet)
	if question == nil {
		return say(dnsMalformed, nil)
	}
	host, addr, err := parseHost(name)
	if err != nil || addr.IsValid() || !r.resolves(ctx, host, kind) {
		return say(dnsNoName, question)
	}
	if kind != typeA {
		return say(0, question) // there is nothing else about it
	}
	address, ok := r.names.address(host)
	if !ok {
		return say(dnsFailed, question)
	}
	out := say(0, question)
	out[7] = 1
	out = append(out, 0xc0, dnsHeader, 0, typeA, 0, classIN, 0, 0, 0, 60, 0, 4) // the name that was asked for; for a minute
	return append(out, address[:]...)
}

// resolves decides as for every request whether a host may be reached.
func (r *Run) resolves(ctx context.Context, host string, kind uint16) bool {
	_, refused := r.admit(&url.URL{Scheme: "https", Host: host})
	if refused == nil {
		return true
	}
	if _, err := r.admit(&url.URL{Scheme: "http", Host: host}); err == nil {
		return true
	}
	if kind == typeA && r.names.refuse(host) {
		at := Request{Method: "LOOKUP", Scheme: "dns", Host: r.shown(host, 260), Decision: decision(refused)}
		if done, err := r.record(ctx, at); err == nil {
			done(0, at.Decision)
		}
	}
	return false
}

// parseQuestion reads the only question of a message, and returns it as it stands there,
// too; nil: it has none, or something that no resolver sends.
func parseQuestion(packet []byte) (name string, kind uint16, question []byte) {
	const oneQuestion = "\x00\x01\x00\x00\x00\x00" // and no answers; what is beside it, such as EDNS, is not looked at
	if string(packet[4:10]) != oneQuestion {
		return "", 0, nil
	}
	var labels []string
	at := dnsHeader
	for {
		if at >= len(packet) || at > dnsHeader+254 {
			return "", 0, nil
		}
		n := int(packet[at])
		at++
		if n == 0 {
			break
		}
		if n > 63 || at+n > len(packet) { // longer ones are pointers
			return "", 0, nil
		}
		label := string(packet[at : at+n])
		if strings.Contains(label, ".") { // it would be read as two
			return "", 0, nil
		}
		labels = append(labels, label)
		at += n
	}
	if at+4 > len(packet) || binary.BigEndian.Uint16(packet[at+2:]) != classIN {
		return "", 0, nil
	}
	return strings.Join(labels, "."), binary.BigEndian.Uint16(packet[at:]), packet[dnsHeader : at+4]
}
