"""The kernels compiled ahead suffice for the reference networks: every command runs without a compiler, on GPUs that compute nothing.

ctest names the driver of these GPUs (tools/idle_gpu.cpp): cuda:0, an A100; cuda:1, an H200; cuda:2, a B200, which is newer than
the cubins and takes the PTX. All but the first two classes need a build with kernels compiled ahead (TENON_CUDA_CUBINS) and are
skipped elsewhere.
"""
import os
import shutil
import struct
import subprocess
import unittest

from command import CommandTest

GPU = os.environ.get("TENON_IDLE_GPU", "")
TOOL = os.environ.get("TENON_BUILT_IN_TOOL", "")
STORED = "TENON_IDLE_CUBLASLT" in os.environ
VENDORS = {"TENON_CUBLASLT": os.environ.get("TENON_IDLE_CUBLASLT", ""), "TENON_CUDNN": os.environ.get("TENON_IDLE_CUDNN", "")}
ALONE = {"TENON_CUBLASLT": "off", "TENON_CUDNN": "off"}
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")


@unittest.skipUnless(GPU, "ctest names the idle GPU")
class IdleGpu(CommandTest):
    def test_has_every_required_driver_function(self):
        cuda = self.json("doctor", "--quick", "--json", TENON_CUDA_DRIVER=GPU, TENON_NVRTC="off", **ALONE)["cuda"]
        self.assertEqual([library["found"] for library in cuda["libraries"] if library["name"] == "driver"], [True])
        if STORED:
            self.assertEqual([gpu["capability"] for gpu in cuda["gpus"]], [80, 90, 100])
        else:
            self.assertIn("NVRTC", cuda["why_none"])


@unittest.skipUnless(TOOL, "ctest names the tool")
class Tool(CommandTest):
    """tools/built_in_kernels.cpp."""

    def call(self, *words):
        done = subprocess.run([TOOL, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def test_words(self):
        for word in ("--help", "-h"):
            code, out, err = self.call(word)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("usage: tenon_built_in STORE [OTHER]", out)
        for words in (["--hlep"], ["store", "-x"], [], ["a", "b", "c"]):
            code, out, err = self.call(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn("usage: ", err)
        self.assertIn("no option --hlep", self.call("--hlep")[2])
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")


@unittest.skipUnless(STORED, "this build has no kernels compiled ahead")
class BuiltIn(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.environment |= {"TENON_CUDA_DRIVER": GPU, "TENON_NVRTC": "off"}
        cls.data = cls.folder / "white"
        cls.data.mkdir()
        for stem, count in (("train", 60000), ("t10k", 10000)):
            with open(cls.data / f"{stem}-images-idx3-ubyte", "wb") as file:
                file.write(struct.pack(">IIII", 0x803, count, 28, 28))
                file.truncate(16 + count * 784)
            (cls.data / f"{stem}-labels-idx1-ubyte").write_bytes(
                struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))

    def every_way(self):
        """GPUs, with and without NVIDIA's libraries, with and without the built-in choices."""
        for gpu in ("cuda:0", "cuda:1", "cuda:2"):
            for libraries in (ALONE, VENDORS):
                yield gpu, "read", libraries
        yield "cuda:1", "off", ALONE

    def test_steps_of_bench(self):
        for gpu, tune, libraries in self.every_way():
            with self.subTest(gpu=gpu, tune=tune, libraries=libraries):
                self.ok("bench", "--device", gpu, "--only", "lenet5_b64,keras_cnn_b128,fcn_r,fcn_s", "--phase", "train,infer",
                        "--precision", ",".join(PRECISIONS), "--tune", tune, "--budget", "0.001", **libraries)

    def train_and_use(self, model, precision, device, tune, libraries):
        with self.subTest(model=model, precision=precision, device=device, tune=tune, libraries=libraries):
            where = ["--device", device, "--tune", tune]
            self.ok("train", model, "--data", f"mnist:{self.data}", "--epochs", "1", "--precision", precision, "--out", "run", *where,
                    **libraries)
            self.ok("eval", "run", *where, **libraries)
            self.ok("predict", "run", "--data", "digits:10,10", *where, **libraries)
            shutil.rmtree(self.folder / "run")

    def test_training_and_later_commands(self):
        for gpu, tune, libraries in self.every_way():
            for model in ("lenet5", "keras_cnn", "mlp"):
                for precision in PRECISIONS:
                    self.train_and_use(model, precision, gpu, tune, libraries)
        for precision in PRECISIONS:  # large checkpoints
            self.train_and_use("fcn_r", precision, "cuda:1", "read", ALONE)

    def test_drawn_digits(self):
        for model in ("lenet5", "keras_cnn", "mlp", "fcn_r"):
            # The last batches have the same sizes as those of the default 60,000, 6,000 and 10,000 samples.
            self.ok("train", model, "--data", "digits:2144,500,validation=0.2332", "--epochs", "1", "--device", "cuda:1", "--out", f"digits-{model}",
                    **ALONE)

    def test_the_built_in_kernels_are_listed(self):
        told = self.ok("doctor", "--quick", **ALONE).out
        for words in ("compiled ahead: ", " for sm_80, ", " for sm_90a", "newer GPUs (PTX)"):
            self.assertIn(words, told)
        self.assertIn("for sm_90a", self.json("doctor", "--json", **ALONE)["cuda"]["built_in"])

    def test_switched_off(self):
        self.fails(7, "bench", "--device", "cuda:1", "--only", "lenet5_b64", says=["NVRTC", "nvidia-cuda-nvrtc"],
                   TENON_CUDA_BUILT_IN="off", **ALONE)

    def test_other_networks_report_the_missing_compiler(self):
        self.fails(7, "bench", "--device", "cuda:1", "--only", "mlp:77-33-5_b3", "--precision", "bf16",
                   says=["compiled ahead", "nvidia-cuda-nvrtc"], **ALONE)


if __name__ == "__main__":
    unittest.main()
