// Command s3 is the S3 service that storage is tested with: versitygw on a folder. The command of
// versitygw also has backends and tests that are not needed here, and takes twice as long to
// compile.
//
//	s3 SOCKET METADATA BUCKETS
//
// The environment has the credentials: ROOT_ACCESS_KEY and ROOT_SECRET_KEY.
package main

import (
	"context"
	"log"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	socket, metadata, buckets := os.Args[1], os.Args[2], os.Args[3]

	sideCar, err := meta.NewSideCar(metadata)
	if err != nil {
		log.Fatal(err)
	}

	options := posix.PosixOpts{SideCarDir: metadata, Concurrency: 1000, CopyObjectThreshold: 5 << 30}
	options.SetNewDirPerm(0o755)
	options.SetNewFilePerm(0o644)

	backend, err := posix.New(buckets, sideCar, options)
	if err != nil {
		log.Fatal(err)
	}

	log.Fatal(embedgw.RunVersityGW(context.Background(), backend, &embedgw.Config{
		RootUserAccess: os.Getenv("ROOT_ACCESS_KEY"), RootUserSecret: os.Getenv("ROOT_SECRET_KEY"),
		Ports: []string{socket}, MaxConnections: 10_000, MaxRequests: 10_000, MultipartMaxParts: 10_000, Quiet: true,
	}))
}
