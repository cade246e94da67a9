package enduser

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

const (
	quietZone  = 4 // modules around a QR code, by its standard
	moduleSize = 4 // pixels
)

// qrCode returns a text's QR code as SVG. The SVG has neither # nor %: clients put it into a data
// URL as it is.
func qrCode(text string) (string, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return "", err
	}

	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			start := x
			for x < code.Size && code.Black(x, y) {
				x++
			}
			if x > start {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", start+quietZone, y+quietZone, x-start, x-start)
			}
		}
	}

	size := code.Size + 2*quietZone
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[1]d" viewBox="0 0 %[2]d %[2]d" `+
		`shape-rendering="crispEdges"><path fill="white" d="M0 0h%[2]dv%[2]dH0z"/><path d="%[3]s"/></svg>`,
		size*moduleSize, size, path.String()), nil
}
