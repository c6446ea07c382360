#!/usr/bin/env python3
"""Seconds of sound a second on one core, from the file to a log-mel spectrogram of 80 mels: read, decode,
resample to 16 kHz, spectrum, logarithm.

Runs with a Python that has torchaudio and soundfile.

`ridge data audio:FOLDER,features=logmel --bench` times ours: run the two in turn, since times of one
sitting compare and those of two do not.  --make writes FOLDER/{wav,flac}/*: 40 sounds each of 10 s at
44.1 kHz, chirps and noise.
"""
import argparse
import os
import pathlib
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy
import soundfile
import torch

ROUNDS, RATE, SECONDS, COUNT = 5, 44100, 10, 40


def make(folder):
    t = numpy.arange(RATE * SECONDS) / RATE
    for kind in ("wav", "flac"):
        os.makedirs(folder / kind, exist_ok=True)
        for seed in range(COUNT):
            random = numpy.random.default_rng(seed)
            x = 0.3 * numpy.sin(2 * numpy.pi * (100 * (seed + 1) + 200 * t) * t)
            soundfile.write(folder / kind / f"{seed:02}.{kind}",
                            x + 0.02 * random.normal(size=t.size), RATE, subtype="PCM_16")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    parser.add_argument("--make", action="store_true", help="write the sounds, and stop")
    arguments = parser.parse_args()
    folder = arguments.folder
    if arguments.make:
        make(folder)
        return
    torch.version.cuda = None  # of transforms that run on the CPU alone
    import torchaudio
    torch.set_num_threads(1)
    resample = torchaudio.transforms.Resample(RATE, 16000)
    mel = torchaudio.transforms.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=80)
    decibel = torchaudio.transforms.AmplitudeToDB()
    for kind in ("wav", "flac"):
        paths = sorted((folder / kind).iterdir())
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for path in paths:
                wave, _ = soundfile.read(path, dtype="float32")
                decibel(mel(resample(torch.from_numpy(wave))))
            times.append(time.perf_counter() - start)
        print(f"torchaudio {torchaudio.__version__} {kind}: "
              f"{len(paths) * SECONDS / min(times):.0f} seconds of sound a second")


if __name__ == "__main__":
    main()
