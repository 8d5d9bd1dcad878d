"""io/formats"""
