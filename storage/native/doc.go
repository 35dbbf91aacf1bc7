// Package native holds columns of ClickHouse's Native format that the driver does not have, or not as fast: texts with dictionaries,
// lists and maps of them, long texts that are sent from where they lie, audit IDs as UUIDs. A [Payload] is a block of columns as an
// INSERT sends it.
package native
