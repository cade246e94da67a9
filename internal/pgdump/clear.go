package pgdump

import (
	"fmt"
	"io"
)

// File is an archive file.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// Clear removes the owners from an archive in pg_dump's custom format, and the entries that remove
// selects. It also replaces pg_dump's empty search path with a project's, which functions in
// checks, indexes and materialized views need: psql and pg_restore can't try two.
//
// It overwrites texts in the table of contents in place, so data offsets stay valid. pg_restore
// reads a text up to the first zero byte, and executes nothing for an empty statement.
func Clear(f File, remove func(Entry) bool) error {
	entries, err := ReadTOC(io.NewSectionReader(f, 0, maxTOCSize))
	if err != nil {
		return err
	}

	for _, e := range entries {
		spans := []span{e.owner}
		if remove(e) {
			spans = append(spans, e.definition, e.drop)
		}

		if text := setSearchPath + ";\n"; e.Desc == "SEARCHPATH" && int64(len(text)) <= e.definition.length {
			spans = append(spans, span{e.definition.start + int64(len(text)), e.definition.length - int64(len(text))})
			if _, err := f.WriteAt([]byte(text), e.definition.start); err != nil {
				return fmt.Errorf("change the archive: %w", err)
			}
		}

		for _, s := range spans {
			if _, err := f.WriteAt(make([]byte, s.length), s.start); err != nil {
				return fmt.Errorf("change the archive: %w", err)
			}
		}
	}

	return nil
}
