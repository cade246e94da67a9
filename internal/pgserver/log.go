package pgserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	logName    = "postgresql.log"
	maxLogSize = 8 << 20 // bytes
)

// openLog opens PostgreSQL's log for a start.
func (c *cluster) openLog() (*os.File, error) {
	if err := rotateLog(c.config.Dir); err != nil {
		return nil, err
	}

	f, err := c.root.OpenFile(logName, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}

	info, err := f.Stat()
	if err := errors.Join(err, c.chown(f)); err != nil {
		f.Close()
		return nil, err
	}

	c.logOffset = info.Size()
	return f, nil
}

// rotateLog moves a large log's contents to postgresql.log.1. PostgreSQL keeps the file open, so
// the log is copied and truncated, not renamed.
//
// PostgreSQL's own logging collector cannot bound a log by size: it truncates files only when it
// rotates by time. User code can write to the log (RAISE LOG).
func rotateLog(dir string) error {
	info, err := os.Lstat(filepath.Join(dir, logName))
	if err != nil || info.Size() < maxLogSize {
		return nil
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	log, err := root.OpenFile(logName, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer log.Close()

	if err := root.RemoveAll(logName + ".1"); err != nil {
		return err
	}

	old, err := root.OpenFile(logName+".1", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	_, err = io.Copy(old, io.NewSectionReader(log, max(0, info.Size()-maxLogSize), maxLogSize))
	return errors.Join(err, old.Close(), log.Truncate(0))
}

// exitReason returns an error with the reason why PostgreSQL ended during a start.
func (c *cluster) exitReason() error {
	path := filepath.Join(c.config.Dir, logName)

	f, err := c.root.Open(logName)
	if err != nil {
		return fmt.Errorf("PostgreSQL exited before it was ready; read its log: %w", err)
	}
	defer f.Close()

	text, err := io.ReadAll(io.NewSectionReader(f, c.logOffset, 64<<10))
	if err != nil {
		return fmt.Errorf("PostgreSQL exited before it was ready; read its log: %w", err)
	}

	var reasons []string
	for line := range strings.Lines(string(text)) {
		_, message, ok := strings.Cut(strings.TrimSpace(line), "] ") // after the time and the PID
		if ok {
			reasons = append(reasons, strings.Join(strings.Fields(message), " "))
		}
	}

	reasons = reasons[max(0, len(reasons)-3):] // the reason comes last
	return fmt.Errorf("PostgreSQL exited before it was ready: %s (see %s)", strings.Join(reasons, "; "), path)
}
