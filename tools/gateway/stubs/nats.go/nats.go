// Package nats is a stub of the client that versitygw notifies NATS with, see package main.
package nats

import "errors"

type Conn struct{}

func Connect(string) (*Conn, error) { return nil, errors.ErrUnsupported }

func (*Conn) Publish(string, []byte) error { return errors.ErrUnsupported }

func (*Conn) Close() {}
