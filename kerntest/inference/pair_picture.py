from __future__ import annotations


def pair_figure(analysis):
    raise NotImplementedError
