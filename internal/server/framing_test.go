package server_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// checkFraming sends two requests, the first with ambiguous framing, and expects a single response
// of 400.
func checkFraming(t *testing.T, address string) {
	t.Helper()

	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	_ = conn.SetDeadline(time.Now().Add(30 * time.Second)) // fails a hanging test

	_, err = io.WriteString(conn,
		"GET /metrics HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}

	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400 ") || strings.Count(string(got), "HTTP/1.") != 1 {
		t.Errorf("%s answered %.200q, %v, want one 400", address, got, err)
	}
}
