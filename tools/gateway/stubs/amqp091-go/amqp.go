// Package amqp091 is a stub of the client that versitygw notifies RabbitMQ with, see package main.
package amqp091

import (
	"errors"
	"time"
)

type Connection struct{}

func Dial(string) (*Connection, error) { return nil, errors.ErrUnsupported }

func (*Connection) Channel() (*Channel, error) { return nil, errors.ErrUnsupported }

func (*Connection) Close() error { return nil }

type Channel struct{}

type Publishing struct {
	Timestamp              time.Time
	ContentType, MessageId string
	Body                   []byte
}

func (*Channel) Publish(exchange, key string, mandatory, immediate bool, message Publishing) error {
	return errors.ErrUnsupported
}

func (*Channel) Close() error { return nil }
