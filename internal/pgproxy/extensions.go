package pgproxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/schema"
	"github.com/socle-dev/socle/internal/sqllex"
)

// No project login may create an extension. So the proxy looks for CREATE EXTENSION IF NOT EXISTS
// in a client's messages, and has the platform install the extension before PostgreSQL gets the
// message, which passes unchanged. PostgreSQL then finds the extension and does nothing, or refuses
// the statement as before.
//
// The proxy's reading is a hint and no authority: it decides only whether an extension that the
// client may install anyway, by POST /extensions, is installed now.

const installTimeout = 30 * time.Second

// requests follows the boundaries between a client's messages.
type requests struct {
	remaining int  // bytes in the current message that pass unread
	blind     bool // the stream is no protocol: PostgreSQL says so
}

const (
	queryMessage = 'Q'
	parseMessage = 'P'
)

// scan scans the next bytes. It returns how many to pass on, and the extensions that their
// statements create. The rest is the beginning of a message, to be scanned again with more bytes. A
// message with SQL passes whole, unless it is larger than a buffer: then it passes unread.
func (r *requests) scan(b []byte) (count int, extensions []dialect.Extension) {
	for pos := 0; ; {
		n := min(r.remaining, len(b)-pos)
		r.remaining -= n
		pos += n

		if r.blind {
			return len(b), extensions
		}
		if len(b)-pos < headSize {
			return pos, extensions
		}

		size := 1 + int(binary.BigEndian.Uint32(b[pos+1:]))
		switch {
		case size < headSize:
			r.blind = true
			continue
		case (b[pos] != queryMessage && b[pos] != parseMessage) || size > bufferSize:
			r.remaining = size
			continue
		case len(b)-pos < size:
			return pos, extensions
		}

		extensions = append(extensions, tolerantExtensions(b[pos], b[pos+headSize:pos+size])...)
		r.remaining = size
	}
}

// tolerantExtensions returns the extensions that a message's statements create if they do not
// exist.
func tolerantExtensions(message byte, body []byte) []dialect.Extension {
	if message == parseMessage { // the statement name comes first
		_, body, _ = bytes.Cut(body, []byte{0})
	}

	text, _, _ := bytes.Cut(body, []byte{0})
	if !bytes.Contains(bytes.ToLower(text), []byte("extension")) {
		return nil
	}

	var all []dialect.Extension
	for _, s := range sqllex.Split(string(text)) {
		v := dialect.Decide(s)
		if v.Action == dialect.CreateExtension && v.Extension.Tolerant &&
			slices.Contains(schema.AllowedExtensions, v.Extension.Name) {
			all = append(all, v.Extension)
		}
	}

	return all
}

// installExtension installs an extension in a client's project, unless it is installed. A failure
// is logged: PostgreSQL refuses the client's statement.
func (p *Proxy) installExtension(c Client, e dialect.Extension) {
	ctx, cancel := p.untilClosing(p.shared(c.Project))
	defer cancel()

	ctx, stop := context.WithTimeout(ctx, installTimeout)
	defer stop()

	project := p.Projects.Open(c.Project)
	if project.OverQuota() {
		return
	}

	exists, err := pg.Value[bool](ctx, project.Trusted(), `
		select exists (select from pg_catalog.pg_extension where extname = @name)`, pgx.StrictNamedArgs{"name": e.Name})
	if exists {
		return
	}

	if err == nil {
		err = c.Check(ctx)
	}
	if err == nil {
		ctx = audit.Begin(ctx, p.AuditKey, c.entry("createExtension"))
		err = project.InTx(ctx, func(tx pgx.Tx) error {
			_, err := schema.CreateExtensionIn(ctx, tx, e.Name, cmp.Or(e.Schema, schema.DefaultSchema))
			return err
		})
	}

	if err != nil && !fault.Is(err, fault.Conflict) { // installed by another client meanwhile
		p.logFailure("install the extension "+strings.ToValidUTF8(e.Name, ""), c, err)
	}
}
