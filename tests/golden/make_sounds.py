#!/usr/bin/env python3
"""Writes tests/golden/sounds: small WAV and FLAC files, and what torchaudio and transformers make of them.

    make_sounds.py            needs numpy, torch, torchaudio, transformers and soundfile

expected.npz holds
  resample_FROM_TO  torchaudio.functional.resample of tone.wav (FROM 16000) or tone44.flac
  db, log, slaney   torchaudio's MelSpectrogram of tone.wav, in decibels or ln(x + 1e-6)
  whisper80, whisper128   WhisperFeatureExtractor of tone.wav, padded to a second
All of it is computed in f64 and rounded to f32; how far f32 is away is printed.
Files of other codes hold the first frames of tone.wav: codes.npz has what soundfile reads from them.
"""
import os
import struct
import sys

import numpy as np
import soundfile
import torch

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sounds")
RATE = 16000


def tone(rate, seconds, seed):
    """A chirp, a steady tone and noise."""
    random = np.random.default_rng(seed)
    t = np.arange(int(rate * seconds)) / rate
    x = 0.4 * np.sin(2 * np.pi * (200 + 2500 * t) * t) + 0.2 * np.sin(2 * np.pi * 1234.5 * t)
    return x + 0.01 * random.normal(size=t.size)


def chunk(name, body):
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def riff(*chunks):
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def write(name, data):
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(data)


def write_codes(x):
    """The same frames in every code: stereo, the right channel the left one halved."""
    stereo = np.stack([x, x / 2], axis=1)[:200]
    for name, code in (("u8", "PCM_U8"), ("s16", "PCM_16"), ("s24", "PCM_24"), ("s32", "PCM_32"),
                       ("f32", "FLOAT"), ("f64", "DOUBLE")):
        soundfile.write(os.path.join(FOLDER, name + ".wav"), stereo, RATE, subtype=code)
    soundfile.write(os.path.join(FOLDER, "extensible.wav"), stereo, RATE, subtype="PCM_24",
                    format="WAVEX")
    for name, code in (("s16", "PCM_16"), ("s24", "PCM_24")):
        soundfile.write(os.path.join(FOLDER, name + ".flac"), stereo, RATE, subtype=code)
    pcm = (np.clip(stereo[:50], -1, 1) * 32767).astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, 2, RATE, RATE * 4, 4, 16)
    write("odd.wav", riff(chunk(b"LIST", b"odd"), chunk(b"fmt ", form), chunk(b"junk", b"1234567"),
                          chunk(b"data", pcm), chunk(b"tail", b"x")))
    found = {}
    for name in sorted(os.listdir(FOLDER)):
        if name.split(".")[0] not in ("u8", "s16", "s24", "s32", "f32", "f64", "extensible", "odd"):
            continue
        frames, _ = soundfile.read(os.path.join(FOLDER, name), dtype="float64", always_2d=True)
        found[name.replace(".", "_")] = frames.astype("float32")
    np.savez(os.path.join(FOLDER, "codes.npz"), **found)


def whisper(x, mels):
    from transformers import WhisperFeatureExtractor
    extractor = WhisperFeatureExtractor(feature_size=mels, chunk_length=1)
    padded = np.zeros(RATE, "float32")
    padded[:x.size] = x
    exact = extractor._np_extract_fbank_features(padded[None], "cpu")[0]
    usual = np.asarray(extractor(x, sampling_rate=RATE, return_tensors="np").input_features)[0]
    print(f"whisper{mels}: numpy and torch differ by {np.abs(exact - usual).max():.3g}")
    return np.ascontiguousarray(exact, "float32")


def main():
    torch.version.cuda = None  # of features that run on the CPU alone
    import torchaudio
    os.makedirs(FOLDER, exist_ok=True)
    soundfile.write(os.path.join(FOLDER, "tone.wav"), tone(RATE, 0.5, 0), RATE, subtype="PCM_16")
    soundfile.write(os.path.join(FOLDER, "tone44.flac"), tone(44100, 0.3, 1), 44100,
                    subtype="PCM_16")
    x, _ = soundfile.read(os.path.join(FOLDER, "tone.wav"), dtype="float32")
    x44, _ = soundfile.read(os.path.join(FOLDER, "tone44.flac"), dtype="float32")
    write_codes(x)
    expected = {}
    for source, rate, other in ((x, RATE, 8000), (x, RATE, 11025), (x, RATE, 22050),
                                (x44, 44100, RATE)):
        wave = torch.from_numpy(source)
        exact = torchaudio.functional.resample(wave.double(), rate, other)
        single = torchaudio.functional.resample(wave, rate, other)
        print(f"resample {rate} {other}: f64 and f32 differ by {(exact - single).abs().max():.3g}")
        expected[f"resample_{rate}_{other}"] = exact.numpy().astype("float32")
    transforms = torchaudio.transforms
    wave = torch.from_numpy(x).double()

    def mel(**options):
        """Window and triangles in f64 too."""
        torch.set_default_dtype(torch.float64)
        made = transforms.MelSpectrogram(RATE, **options)(wave)
        torch.set_default_dtype(torch.float32)
        return made
    usual = {"n_fft": 400, "hop_length": 160, "n_mels": 80}
    decibel = transforms.AmplitudeToDB()
    expected["db"] = decibel(mel(**usual))
    expected["log"] = torch.log(mel(n_fft=512, win_length=400, hop_length=200, n_mels=40,
                                    f_min=60.0, f_max=7600.0) + 1e-6)
    expected["slaney"] = decibel(mel(norm="slaney", mel_scale="slaney", **usual))
    single = decibel(transforms.MelSpectrogram(RATE, **usual)(wave.float()))
    print(f"torchaudio in f64 and f32 differ by {(single - expected['db']).abs().max():.3g} dB")
    for name in ("db", "log", "slaney"):
        expected[name] = np.ascontiguousarray(expected[name].numpy(), "float32")
    for mels in (80, 128):
        expected[f"whisper{mels}"] = whisper(x, mels)
    np.savez(os.path.join(FOLDER, "expected.npz"), **expected)
    print("torch", torch.__version__, "torchaudio", torchaudio.__version__)


if __name__ == "__main__":
    sys.exit(main())
