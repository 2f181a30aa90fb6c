"""Parts of a residual network. Scripts that repeat a run have these very lines."""

from torch import Tensor, nn


class ResidualBlock(nn.Module):
    """Two convolutions of 3×3 with a norm each, and a way past them, which has a convolution where its shape changes.

    The norms are over groups of channels of one sample: without running statistics, training and testing compute the
    same on every device, in pieces of a batch as in the whole, and a batch may have one sample.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, groups: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.GroupNorm(groups, outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.GroupNorm(groups, outputs),
        )
        self.past = nn.Sequential()
        if stride > 1 or inputs != outputs:
            self.past = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.GroupNorm(groups, outputs)
            )
        self.rectified = nn.ReLU()

    def forward(self, image: Tensor) -> Tensor:
        rectified: Tensor = self.rectified(self.inner(image) + self.past(image))
        return rectified
