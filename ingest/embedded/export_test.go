package embedded

import "os"

// SetSync replaces what syncs a file. Call it before a client connects.
func (b *Broker) SetSync(sync func(*os.File) error) {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	b.disk.sync = sync
}
