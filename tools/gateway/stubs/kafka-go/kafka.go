// Package kafka is a stub of the client that versitygw notifies Kafka with, see package main.
package kafka

import (
	"context"
	"errors"
	"time"
)

type LeastBytes struct{}

type WriterConfig struct {
	Brokers      []string
	Topic        string
	Balancer     *LeastBytes
	BatchTimeout time.Duration
}

type Message struct{ Key, Value []byte }

type Writer struct{}

func NewWriter(WriterConfig) *Writer { return &Writer{} }

func (*Writer) WriteMessages(context.Context, ...Message) error { return errors.ErrUnsupported }

func (*Writer) Close() error { return nil }
