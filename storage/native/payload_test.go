package native

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/proto"
)

// TestPayload compares a payload, read and written out, with what the driver's own columns give,
// over texts shorter and longer than a chunk, in a block that is used again.
func TestPayload(t *testing.T) {
	var mem Chunks
	long, lists := &TextColumn{Mem: &mem}, &TextArray{}
	for _, sizes := range [][]int{nil, {0}, {1, chunkBytes, 0, 2 * chunkBytes, 7}, {chunkBytes - 20, 30, 30, chunkBytes - 10},
		slicesOf(5000, 300)} {
		t.Run(fmt.Sprint(len(sizes)), func(t *testing.T) {
			var want, wantItems proto.ColStr
			long.Reset()
			lists.Reset()
			mem.Trim()
			var number proto.ColUInt8
			for i, n := range sizes {
				s := strings.Repeat(string(rune('a'+i%26)), n)
				want.Append(s)
				wantItems.Append(s)
				long.AppendBytes([]byte(s))
				lists.Append([]string{s})
				number.Append(uint8(i))
			}
			var p Payload
			if err := p.Encode([]proto.InputColumn{{Name: "s", Data: long}, {Name: "l", Data: lists}, {Name: "n", Data: &number}},
				len(sizes)); err != nil {
				t.Fatal(err)
			}
			var buf proto.Buffer
			list := proto.NewArray[string](&wantItems)
			for i := range sizes {
				list.Offsets = append(list.Offsets, uint64(i+1))
			}
			block := proto.Block{Columns: 3, Rows: len(sizes)}
			if err := block.EncodeRawBlock(&buf, 0,
				[]proto.InputColumn{{Name: "s", Data: &want}, {Name: "l", Data: list}, {Name: "n", Data: &number}}); err != nil {
				t.Fatal(err)
			}
			read, err := io.ReadAll(p.Reader())
			if err != nil || !bytes.Equal(read, buf.Buf) {
				t.Fatalf("read %d bytes of %d (%v), or others", len(read), len(buf.Buf), err)
			}
			var out bytes.Buffer
			n, err := p.Reader().WriteTo(&out)
			if err != nil || !bytes.Equal(out.Bytes(), buf.Buf) || int(n) != p.Size() {
				t.Fatalf("wrote %d bytes of %d (%v), or others", n, p.Size(), err)
			}
		})
	}
	if err := new(Payload).Encode([]proto.InputColumn{{Name: "s", Data: long}}, 3); err == nil {
		t.Error("a column with other rows than the block was taken")
	}
}

func slicesOf(n, size int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = size
	}
	return out
}

// TestChunksTrim keeps what is in use and lets go of the rest by and by.
func TestChunksTrim(t *testing.T) {
	var mem Chunks
	c := TextColumn{Mem: &mem}
	for range 40 {
		c.AppendBytes(make([]byte, chunkBytes/2))
	}
	c.Reset()
	mem.Trim()
	if len(mem.free) != 40 {
		t.Fatalf("kept %d chunks of 40 that were in use", len(mem.free))
	}
	for range 100 {
		c.Append("little")
		c.Reset()
		mem.Trim()
	}
	if len(mem.free) != 1 {
		t.Errorf("kept %d chunks, one is in use", len(mem.free))
	}
}
