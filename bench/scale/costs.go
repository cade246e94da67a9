package main

// Costs on one processor of the machine that docs/performance.md was measured on.
const (
	// Processor time of Socle and PostgreSQL together, in seconds, go run ./bench/rest -clients 16:
	// one row by key, and an insert that returns the row.
	readTime  = 0.00014
	writeTime = 0.00036

	// Processor time of a request of the platform API, go run ./bench/platform: "get container".
	platformTime = 0.00037

	// What a new session costs beyond the request, go run ./bench/projects, "cold".
	sessionTime = 0.0115

	// Processor time of the backup of a nearly empty project, measured by hand, and of each GB of
	// its data, an assumption.
	backupTime   = 0.24
	backupTimeGB = 30

	// Bytes. A socket: go run ./bench/realtime. A project's catalog in Socle's memory: go run
	// ./bench/projects. Measured by hand: the private memory of a session of PostgreSQL (2 to 10
	// MB), an empty project on disk (645 files), and the WAL of a row of 60 bytes, without images
	// of whole pages.
	socketBytes  = 38e3
	sessionBytes = 6e6
	catalogBytes = 48e3
	serverBytes  = 60e6
	projectBytes = 4.2e6
	rowWAL       = 416

	// WAL of images of whole pages, an assumption: each page that is written after a checkpoint,
	// every 5 minutes, is written whole once. A small row touches three: the table's and those of
	// two indexes.
	pageBytes  = 8192
	pagesOfRow = 3
	checkpoint = 300.0 // seconds
	hotPages   = 60    // pages of one project that are written between two checkpoints, at most
)

// Shares of the requests.
const (
	reads    = 0.75
	writes   = 0.15
	platform = 1 - reads - writes
)

// idle is the time after which an unused connection to a project is closed, in seconds.
const idle = 30.0

// sharedBuffers is the share of the memory that PostgreSQL's pages get, and reserved what the
// system and the cache of files need at least.
const (
	sharedBuffers = 0.25
	reserved      = 0.25
)
