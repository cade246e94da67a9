// Command check compares the report of a benchmark with a former one. It prints the ratios that are
// worse beyond noise, and fails if there are any.
//
//	go run ./bench/rest -json new.json && go run ./bench/check bench/rest/ratios.json new.json
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/socle-dev/socle/bench/report"
)

func main() {
	log.SetFlags(0)

	if len(os.Args) != 3 {
		log.Fatal("usage: check <former report> <report>")
	}

	former, err := report.Read(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}

	now, err := report.Read(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}

	worse := now.Compare(former)
	for _, line := range worse {
		fmt.Println(line)
	}

	if len(worse) > 0 {
		os.Exit(1)
	}

	fmt.Printf("%d ratios are as good as in %s\n", len(former.Ratios), os.Args[1])
}
