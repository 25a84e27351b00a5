// Checks a published log with the Go project's own implementation of transparent logs, golang.org/x/mod/sumdb/tlog:
// the tree of all leaves, the proof of each leaf, and the proof from each earlier tree.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// tiles reads tiles of eight levels, as C2SP's tlog-tiles names them.
type tiles string

func (folder tiles) Height() int { return 8 }

func (folder tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func (folder tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range wanted {
		data, err := folder.read(strings.Replace(tile.Path(), "tile/8/", "tile/", 1))
		if err != nil {
			return nil, err
		}
		if length := tile.W * tlog.HashSize; len(data) >= length {
			all = append(all, data[:length])
		} else {
			return nil, fmt.Errorf("%s is too short", tile.Path())
		}
	}
	return all, nil
}

// read falls back to the full tile, once there is one.
func (folder tiles) read(path string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(string(folder), path))
	if partial := strings.Index(path, ".p/"); os.IsNotExist(err) && partial >= 0 {
		return os.ReadFile(filepath.Join(string(folder), path[:partial]))
	}
	return data, err
}

func must(err error) {
	if err != nil {
		fmt.Println("tlog:", err)
		os.Exit(1)
	}
}

func main() {
	folder := tiles(os.Args[1])
	note, err := os.ReadFile(filepath.Join(os.Args[1], "checkpoint"))
	must(err)
	lines := strings.Split(string(note), "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err)
	root, err := base64.StdEncoding.DecodeString(lines[2])
	must(err)
	tree := tlog.Tree{N: size}
	copy(tree.Hash[:], root)
	nodes := tlog.TileHashReader(tree, folder)
	var leaves []tlog.Hash
	for first := int64(0); first < size; first += 256 {
		path := fmt.Sprintf("tile/entries/%03d", first/256)
		if rest := size - first; rest < 256 {
			path = fmt.Sprintf("%s.p/%d", path, rest)
		}
		data, err := folder.read(path)
		must(err)
		for len(data) > 0 {
			length := 2 + int(binary.BigEndian.Uint16(data))
			leaves = append(leaves, tlog.RecordHash(data[2:length]))
			data = data[length:]
		}
	}
	if int64(len(leaves)) != size {
		must(fmt.Errorf("%d leaves, the checkpoint says %d", len(leaves), size))
	}
	for index, leaf := range leaves {
		proof, err := tlog.ProveRecord(size, int64(index), nodes)
		must(err)
		must(tlog.CheckRecord(proof, size, tree.Hash, int64(index), leaf))
	}
	for old := int64(1); old <= size; old++ {
		proof, err := tlog.ProveTree(size, old, nodes)
		must(err)
		hash, err := tlog.TreeHash(old, nodes)
		must(err)
		must(tlog.CheckTree(proof, size, tree.Hash, old, hash))
	}
	fmt.Printf("%d leaves, %d proofs\n", size, 2*size)
}
