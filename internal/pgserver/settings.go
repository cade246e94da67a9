package pgserver

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// defaultSettings returns the settings for every PostgreSQL that Socle runs.
func defaultSettings() map[string]string {
	all := map[string]string{
		// Listen only on the socket in the directory. The path is relative to the data directory,
		// so it is short wherever the directory is.
		"listen_addresses":        "",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": "..",
		"unix_socket_permissions": "0700",
		"password_encryption":     "scram-sha-256",

		"max_connections": "200",
		// All projects share the lock table. pg_dump locks all tables at once, and a hostile
		// session can take 150,000 locks a second: package projectdb's watchdog needs about half a
		// second to terminate it. 102,400 locks take 25 MB, a third of them allocated at start.
		"max_locks_per_transaction": "512",
		"shared_buffers":            strconv.Itoa(sharedBuffers(memory())) + "MB",
		"wal_level":                 "logical",
		// Socle shares the machine, and requests are short: compiling a statement costs more than
		// it saves.
		"jit": "off",
		// There are no subscriptions; without workers for them there is no launcher process.
		"max_logical_replication_workers": "0",

		"timezone":                   "UTC",
		"log_timezone":               "UTC",
		"datestyle":                  "iso, mdy",
		"lc_messages":                "C",
		"default_text_search_config": "pg_catalog.english",

		"log_line_prefix": "%m [%p] %q%u@%d ",
		// The client receives a statement's error. The statement and its values, which may be
		// secrets, stay out of the log, also when the session is terminated: the watchdog of
		// package projectdb logs the reason.
		"log_min_messages":        "log",
		"log_min_error_statement": "panic",
		"log_error_verbosity":     "terse",
		"log_checkpoints":         "off",
	}

	if runtime.GOOS == "linux" {
		// After a crash PostgreSQL syncs the whole data directory before it starts. File by file,
		// the 400 files of each of a thousand databases take minutes.
		all["recovery_init_sync_method"] = "syncfs"
	}

	return all
}

// statStatements returns the pg_stat_statements settings, or nil if it is not installed. Utility
// statements are not tracked: their texts would be stored with values such as passwords.
func (b Binaries) statStatements() map[string]string {
	// The library directories that pg_config can report.
	for _, dir := range []string{"lib", "lib/postgresql", "lib/postgresql/pgsql"} {
		for _, ending := range []string{".so", ".dylib"} {
			if _, err := os.Stat(filepath.Join(filepath.Dir(b.Dir), dir, "pg_stat_statements"+ending)); err == nil {
				return map[string]string{
					"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track_utility": "off",
				}
			}
		}
	}

	return nil
}

// settings returns the postgresql.conf text. further overrides Socle's own settings.
func settings(b Binaries, overrides map[string]string) string {
	all := defaultSettings()
	maps.Copy(all, b.statStatements())
	maps.Copy(all, overrides)

	var text strings.Builder
	text.WriteString("# Written by Socle at every start. ALTER SYSTEM overrides these settings.\n")
	escape := strings.NewReplacer(`\`, `\\`, `'`, `''`)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, escape.Replace(all[name]))
	}

	return text.String()
}

// sharedBuffers returns PostgreSQL's shared_buffers in MB for a machine's memory in MB. It is
// small, since PostgreSQL also reads through the system's cache.
func sharedBuffers(memory int) int { return max(16, min(128, memory/16)) }

// ProjectMemoryLimit returns the memory limit in bytes for all of one project's sessions together.
func ProjectMemoryLimit() int64 { return max(512<<20, Memory()/4) }

// Memory returns this machine's memory in bytes, or the container's.
func Memory() int64 { return int64(memory()) << 20 }

// sessionMemory returns the limit in KiB on one PostgreSQL process's private memory. A statement
// beyond it fails with out_of_memory, and PostgreSQL continues.
func sessionMemory(memory int) int { return max(512, memory/16) << 10 }

// memory returns this machine's memory in MB, or the container's. It is 4096 if unknown.
func memory() int {
	size := 4096
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kilobytes int
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kilobytes); err == nil {
			size = kilobytes >> 10
		}
	}

	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil { // or "max"
			size = min(size, limit>>20)
		}
	}

	return size
}
