package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// row is a row of docs/security.md.
type row struct{ number, threat, required string }

// readRows reads the rows of the tables in a document. The rows of the first table are numbered. The other
// tables have columns for the threat, the requirement and the measurement.
func readRows(path string) ([]row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var rows []row
	lines := bufio.NewScanner(f)
	for threats := false; lines.Scan(); {
		cells := strings.Split(strings.Trim(lines.Text(), "| "), " | ")
		switch _, err := strconv.Atoi(cells[0]); {
		case !strings.HasPrefix(lines.Text(), "|"):
			threats = false
		case cells[0] == "Threat":
			threats = true
		case err == nil && len(cells) == 4:
			rows = append(rows, row{cells[0], cells[1], cells[3]})
		case threats && len(cells) == 3:
			rows = append(rows, row{"", cells[0], cells[1]})
		}
	}
	return rows, lines.Err()
}
