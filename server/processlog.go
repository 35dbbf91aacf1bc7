package server

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/retrial-io/retrial/internal/config"
)

// NewLog returns the log of a process. Lines go to w, times are UTC, keys are snake_case.
func NewLog(w io.Writer, settings config.Log) (*zap.Logger, error) {
	lvl, err := zapcore.ParseLevel(settings.Level)
	if err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	enc := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "message", StacktraceKey: "stack",
		LineEnding:     zapcore.DefaultLineEnding,
		EncodeTime:     zapcore.RFC3339NanoTimeEncoder,
		EncodeDuration: zapcore.StringDurationEncoder,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
	}
	var encoder zapcore.Encoder
	switch settings.Format {
	case "json":
		encoder = zapcore.NewJSONEncoder(enc)
	case "console":
		enc.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
		enc.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(enc)
	default:
		return nil, fmt.Errorf("invalid log format %q: want console or json", settings.Format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), lvl)), nil
}
