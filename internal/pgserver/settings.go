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

// own returns the settings of every cluster.
func own() map[string]string {
	all := map[string]string{
		// One way in: the socket, in the cluster's folder. The path is relative to the data
		// directory, so it is short wherever the folder is.
		"listen_addresses":        "",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": "..",
		"unix_socket_permissions": "0700",
		"password_encryption":     "scram-sha-256",

		"max_connections": "200",
		// All projects share the lock table. pg_dump locks all tables at once, and a hostile session can take 150,000 locks a second: the
		// watchdog of package tenant needs about half of one to end it. 25 MB, a third of them from the start, for 102,400 locks.
		"max_locks_per_transaction": "512",
		"shared_buffers":            strconv.Itoa(sharedBuffers(memory())) + "MB",
		"wal_level":                 "logical",
		// The machine is shared with Socle, and requests are short: compiling a statement costs more than it saves.
		"jit": "off",
		// Nobody subscribes here to another server; without workers for that there is no launcher process.
		"max_logical_replication_workers": "0",

		"timezone":                   "UTC",
		"log_timezone":               "UTC",
		"datestyle":                  "iso, mdy",
		"lc_messages":                "C",
		"default_text_search_config": "pg_catalog.english",

		"log_line_prefix": "%m [%p] %q%u@%d ",
		// The client gets the error of a statement. Its text and its values, which may be secrets, stay out
		// of the log, also when the session is terminated: the watchdog of package tenant logs why.
		"log_min_messages":        "log",
		"log_min_error_statement": "panic",
		"log_error_verbosity":     "terse",
		"log_checkpoints":         "off",
	}

	if runtime.GOOS == "linux" {
		// After a crash PostgreSQL syncs the whole data folder before it starts. One by one, the 400 files of each of a thousand
		// databases take minutes.
		all["recovery_init_sync_method"] = "syncfs"
	}

	return all
}

// counting returns the settings by which PostgreSQL counts what statements cost, none if these binaries can't. Statements that are not queries are left
// out: their values, of which some are passwords, would be kept with them.
func (b Binaries) counting() map[string]string {
	// where pg_config says that libraries are
	for _, folder := range []string{"lib", "lib/postgresql", "lib/postgresql/pgsql"} {
		for _, ending := range []string{".so", ".dylib"} {
			if _, err := os.Stat(filepath.Join(filepath.Dir(b.Dir), folder, "pg_stat_statements"+ending)); err == nil {
				return map[string]string{
					"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track_utility": "off",
				}
			}
		}
	}

	return nil
}

// settings returns the text of postgresql.conf: our own settings, and further ones that are stronger.
func settings(b Binaries, further map[string]string) string {
	all := own()
	maps.Copy(all, b.counting())
	maps.Copy(all, further)

	var text strings.Builder
	text.WriteString("# Socle writes this file at every start. ALTER SYSTEM is stronger than what stands here.\n")
	escape := strings.NewReplacer(`\`, `\\`, `'`, `''`)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, escape.Replace(all[name]))
	}

	return text.String()
}

// sharedBuffers returns how many MB of a machine's memory PostgreSQL takes for its own cache: a little, since
// it reads through the system's cache anyway.
func sharedBuffers(memory int) int { return max(16, min(128, memory/16)) }

// ProjectMemory returns how many bytes of this machine's memory the sessions of one project may have together.
func ProjectMemory() int64 { return max(512<<20, Memory()/4) }

// Memory returns how many bytes of memory this machine has, or the container that it is run in.
func Memory() int64 { return int64(memory()) << 20 }

// sessionMemory returns how many KiB of private memory one process of PostgreSQL may have. A statement
// beyond it fails with out_of_memory, and PostgreSQL goes on.
func sessionMemory(memory int) int { return max(512, memory/16) << 10 }

// memory returns the MB that this machine, or the container we are in, has: a usual size if it can't be told.
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
