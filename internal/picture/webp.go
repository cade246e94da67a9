package picture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"io"

	"golang.org/x/image/webp"
)

var errWebP = errors.New("malformed animation of WebP")

// decodeWebP decodes a picture, or the first frame of an animation, which x/image does not read.
func decodeWebP(r io.Reader) (image.Image, error) {
	const headBytes, animationBit = 30, 1 << 1

	b := bufio.NewReader(r)
	start, _ := b.Peek(headBytes) // a shorter file fails in the decoder
	if len(start) < headBytes || string(start[12:16]) != "VP8X" || start[20]&animationBit == 0 {
		return webp.Decode(b)
	}

	canvas := image.Rect(0, 0, uint24(start[24:])+1, uint24(start[27:])+1)
	if _, err := b.Discard(12); err != nil { // RIFF, length, WEBP
		return nil, err
	}

	return decodeAnimation(b, canvas)
}

// decodeAnimation decodes the first frame in an animation's chunks.
func decodeAnimation(b *bufio.Reader, canvas image.Rectangle) (image.Image, error) {
	for {
		var start [8]byte
		if _, err := io.ReadFull(b, start[:]); err != nil {
			return nil, err
		}

		length := int64(binary.LittleEndian.Uint32(start[4:]))
		if string(start[:4]) == "ANMF" {
			return decodeFrame(b, length, canvas)
		}

		if _, err := io.CopyN(io.Discard, b, length+length&1); err != nil {
			return nil, err
		}
	}
}

// decodeFrame decodes a frame as a separate picture. Its header has the position and the size, with
// which x/image checks the pixels' size.
func decodeFrame(b *bufio.Reader, length int64, canvas image.Rectangle) (image.Image, error) {
	const headerBytes, alphaBit, extendedBytes = 16, 1 << 4, 18

	var header [headerBytes]byte
	if _, err := io.ReadFull(b, header[:]); err != nil {
		return nil, err
	}

	at := image.Pt(2*uint24(header[0:]), 2*uint24(header[3:]))
	frame := image.Rectangle{Min: at, Max: at.Add(image.Pt(uint24(header[6:])+1, uint24(header[9:])+1))}
	if length < headerBytes+8 || !frame.In(canvas) {
		return nil, errWebP
	}

	kind, err := b.Peek(4)
	if err != nil {
		return nil, err
	}

	still := []byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00")
	binary.LittleEndian.PutUint32(still[4:], uint32(4+extendedBytes+length-headerBytes))
	flags := [4]byte{}
	if string(kind) == "ALPH" {
		flags[0] = alphaBit
	}
	still = append(append(still, flags[:]...), header[6:12]...)

	img, err := webp.Decode(io.MultiReader(bytes.NewReader(still), io.LimitReader(b, length-headerBytes)))
	if err != nil {
		return nil, err
	}

	return placed{img, at}, nil
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// placed is a picture at a position on a canvas.
type placed struct {
	picture image.Image
	at      image.Point
}

// ColorModel implements [image.Image].
func (p placed) ColorModel() color.Model { return p.picture.ColorModel() }

// Bounds implements [image.Image].
func (p placed) Bounds() image.Rectangle { return p.picture.Bounds().Add(p.at) }

// At implements [image.Image].
func (p placed) At(x, y int) color.Color { return p.picture.At(x-p.at.X, y-p.at.Y) }
